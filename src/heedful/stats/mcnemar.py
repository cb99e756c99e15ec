"""Did the policy change more answers for the better than for the worse?"""

from heedful.errors import UsageError


def mcnemar(helps: int, hurts: int) -> float:
    """The exact two-sided p-value that a change is as likely to hurt as to help (McNemar 1947).

    Under that hypothesis helps ~ Binomial(helps + hurts, ½); the smaller tail is doubled and
    cut at 1. No changes at all give 1.
    """
    if helps < 0 or hurts < 0:
        raise UsageError(f"helps and hurts are counts, not {helps} and {hurts}")
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(helps, hurts), helps + hurts, 0.5)))
