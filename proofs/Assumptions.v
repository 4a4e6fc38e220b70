(** What each theorem rests on: `make proofs` prints it, and a test compares it with the list that is allowed. *)

From Sottovoce Require Import Draw Privacy Exp Box Clip BoxRelease Kernel Response Survey Compose Stream Checker.

Print Assumptions draw_law.
Print Assumptions draw_count.
Print Assumptions word_uniform.
Print Assumptions scaled_draw_law.
Print Assumptions shares_near.
Print Assumptions bisect_is_pick.
Print Assumptions choose_record_law.
Print Assumptions check_ratio_sound.
Print Assumptions box_private_units.
Print Assumptions exact_clip_right.
Print Assumptions walk_is_pick.
Print Assumptions box_release_law.
Print Assumptions box_release_private.
Print Assumptions row_law.
Print Assumptions tail_near.
Print Assumptions column_bounds.
Print Assumptions kernel_private_tapes.
Print Assumptions kernel_private.
Print Assumptions response_law.
Print Assumptions response_private.
Print Assumptions survey_private.
Print Assumptions survey_releases.
Print Assumptions charge_covers.
Print Assumptions budget_is_below.
Print Assumptions composition.
Print Assumptions transcript_private.
Print Assumptions stream_private.
Print Assumptions stream_private_exp.
Print Assumptions public_always_fits.
Print Assumptions tapes_into_counts.
Print Assumptions check_sound.
Print Assumptions check_releases.
Print Assumptions check_ratio_exact.
