"""What arrives: reports and estimates."""
