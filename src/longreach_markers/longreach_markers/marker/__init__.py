"""One circular marker in one image: detection and maximum-likelihood fit."""
