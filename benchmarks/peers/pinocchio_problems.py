"""Pinocchio's ADMM on a contact problem: `python pinocchio_problems.py JOB.json`, with `pip install pin scipy`.

W is dense, with the normal last; a problem in 2D has a third component that nothing moves.
"""

import numpy as np
import pinocchio as pin
from problems import serve, timed

MOST = 1_000_000  # iterations; the time is bounded from outside
LAST = np.array([1, 2, 0])  # t1, t2, n


def prepare(job, problem):
    m, d = len(problem.mu), problem.d
    place = (3 * np.arange(m)[:, None] + np.argsort(LAST)[:d]).ravel()  # of our components in theirs
    w, g = np.zeros((3 * m, 3 * m)), np.zeros(3 * m)
    w[place[problem.row], place[problem.column]] = problem.value
    g[place] = problem.q
    if d == 2:
        missing = 3 * np.arange(m) + 1
        w[missing, missing] = 1 / problem.rho
    model = pin.Model()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "body")
    cones, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for mu in problem.mu:
        contact = pin.PointContactConstraintModel(model, 0, pin.SE3.Identity(), 1, pin.SE3.Identity())
        contact.setFriction(float(mu))
        cones.append(pin.ConstraintModel(contact))
        datas.append(cones[len(cones) - 1].createData())

    def solve(tolerance):
        settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
        settings.max_iterations = MOST
        for kind in ("absolute", "relative"):
            for measure in ("feasibility", "complementarity"):
                setattr(settings, f"{kind}_{measure}_tol", tolerance)
        settings.mu_prox = min(settings.mu_prox, tolerance)
        solver, operator = pin.ADMMConstraintSolver(3 * m), pin.DelassusOperatorDense(w)
        _, seconds = timed(solver.solve, operator, g, cones, datas, settings, result)
        return np.array(result.retrieveConstraintImpulses())[place], result.iterations, seconds

    return solve


serve(prepare, pin.__version__)
