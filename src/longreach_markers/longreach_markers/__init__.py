"""
Circular markers tracked by one to eight cameras, Henikl et al. (2015), section 4.2.

A rig has cameras, plane, markers and numbers of the tracker: ``rig``, from files with
``rig_parameters``. :func:`track` tracks its markers in files of images. The other modules are in subpackages:

``camera``      geometry: ``model`` (lens), ``geometry`` (poses, planes, rays), ``triangulation``,
                ``circles`` (their images), ``undistortion``, ``arrays`` (checks)
``marker``      one marker in one image: ``detection`` with ``limits``, ``edges``, ``ellipses``;
                its maximum-likelihood ``fit`` with ``pixel_model``, ``pixel_selection``,
                ``residuals``, ``shadows``, ``measurement``, ``symmetric``, ``products``
``tracking``    markers over time: ``camera_tracker`` with ``image_motion``, ``appearance``,
                ``association``, ``ring_names``; ``rig_tracker`` (positions in space), ``bodies``
                (rigid groups), ``follower`` (start and search), ``image_sets`` (images of equal
                times), ``files`` (``track``); ``diagnostics``; ``sightings``, and what they tell
                of the cameras: ``clock_offset``, ``pose_agreement``, ``pair_fit``,
                ``camera_judge``
``setup``       ``marker_sheet``; ``checkerboards``, ``intrinsics``, ``calibration``; poses:
                ``reference_points``, ``localisation``, ``bundle_adjustment``,
                ``predicted_accuracy``, ``localisation_advice``; ``known_distance``
``io``          ``images`` (encodings), ``compressed_images``, ``image_sources``, ``pictures`` (in
                the order of time), ``overlay``
"""

from __future__ import annotations

from longreach_dynamics.exports import attach

__getattr__, __all__ = attach(__name__, __file__)
