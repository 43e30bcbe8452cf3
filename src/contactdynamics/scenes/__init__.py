"""Scenes of rigid bodies as they are stated: shapes, materials, loads, tables, packings."""
