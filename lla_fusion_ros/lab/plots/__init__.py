"""Figures of evaluation and reproduction (matplotlib); imported only where somebody asks for a picture."""
