"""Models with one thing changed, and who refuses them."""
