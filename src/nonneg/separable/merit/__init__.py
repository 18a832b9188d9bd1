"""MERIT: anchors by convex optimization over the self-dictionary, in linear memory."""
