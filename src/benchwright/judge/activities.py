"""The work activities that items are mapped to: 27 generalized work activities of O*NET, those of thinking and talking.

O*NET groups what people do at work on three levels: generalized (GWA, ``4.A.2.a.4``), intermediate (IWA,
``4.A.2.a.4.I09``) and detailed work activities (DWA, ``4.A.2.a.4.I09.D03``); an id starts with that of its parent. The
ids ``analyzing_data`` etc. are those of the published tables of Haupt et al. (arXiv 2605.30916).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkActivity:
    """A generalized work activity: our id, its element in O*NET, its name there."""

    id: str
    element: str
    label: str


COGNITIVE = (
    WorkActivity("getting_information", "4.A.1.a.1", "Getting Information"),
    WorkActivity("monitoring_processes", "4.A.1.a.2", "Monitoring Processes, Materials, or Surroundings"),
    WorkActivity(
        "estimating_quantifiable_characteristics",
        "4.A.1.b.3",
        "Estimating the Quantifiable Characteristics of Products, Events, or Information",
    ),
    WorkActivity("judging_qualities", "4.A.2.a.1", "Judging the Qualities of Objects, Services, or People"),
    WorkActivity("processing_information", "4.A.2.a.2", "Processing Information"),
    WorkActivity("evaluating_compliance", "4.A.2.a.3", "Evaluating Information to Determine Compliance with Standards"),
    WorkActivity("analyzing_data", "4.A.2.a.4", "Analyzing Data or Information"),
    WorkActivity("making_decisions_solving_problems", "4.A.2.b.1", "Making Decisions and Solving Problems"),
    WorkActivity("thinking_creatively", "4.A.2.b.2", "Thinking Creatively"),
    WorkActivity("updating_using_knowledge", "4.A.2.b.3", "Updating and Using Relevant Knowledge"),
    WorkActivity("developing_objectives_strategies", "4.A.2.b.4", "Developing Objectives and Strategies"),
    WorkActivity("scheduling_work", "4.A.2.b.5", "Scheduling Work and Activities"),
    WorkActivity("organizing_planning_prioritizing", "4.A.2.b.6", "Organizing, Planning, and Prioritizing Work"),
    WorkActivity("documenting_recording", "4.A.3.b.6", "Documenting/Recording Information"),
    WorkActivity("interpreting_information", "4.A.4.a.1", "Interpreting the Meaning of Information for Others"),
    WorkActivity("communicating_internally", "4.A.4.a.2", "Communicating with Supervisors, Peers, or Subordinates"),
    WorkActivity("communicating_externally", "4.A.4.a.3", "Communicating with People Outside the Organization"),
    WorkActivity(
        "establishing_maintaining_relationships",
        "4.A.4.a.4",
        "Establishing and Maintaining Interpersonal Relationships",
    ),
    WorkActivity("assisting_caring", "4.A.4.a.5", "Assisting and Caring for Others"),
    WorkActivity("selling_influencing", "4.A.4.a.6", "Selling or Influencing Others"),
    WorkActivity("performing_for_public", "4.A.4.a.8", "Performing for or Working Directly with the Public"),
    WorkActivity("training_teaching", "4.A.4.b.3", "Training and Teaching Others"),
    WorkActivity("guiding_directing_motivating", "4.A.4.b.4", "Guiding, Directing, and Motivating Subordinates"),
    WorkActivity("providing_consultation", "4.A.4.b.6", "Providing Consultation and Advice to Others"),
    WorkActivity("performing_administrative", "4.A.4.c.1", "Performing Administrative Activities"),
    WorkActivity("staffing_organizational_units", "4.A.4.c.2", "Staffing Organizational Units"),
    WorkActivity("monitoring_controlling_resources", "4.A.4.c.3", "Monitoring and Controlling Resources"),
)
