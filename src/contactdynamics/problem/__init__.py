"""The contact problem: laws, the local problem of one contact, the residual, dense solution, all solutions."""
