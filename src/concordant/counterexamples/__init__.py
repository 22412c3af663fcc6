"""Small populations on which a surrogate ranks wrongly."""
