"""WebShop (Yao et al. 2022) in its setting of 1,000 products: our own implementation of the rules."""
