"""Certified integers: certify, draw, save, charge, audit."""
