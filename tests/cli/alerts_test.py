#!/usr/bin/env python3
"""The alerts in packaging/prometheus: they name series and reasons that a running server has, the page explains them all, and Prometheus's own
promtool, where it is installed, finds them true of the servers that they are meant for and of no other ones."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness
import observe_test
from harness import PATIENCE

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RULES = os.path.join(ROOT, "packaging", "prometheus", "stag.rules.yml")
OF_PROMETHEUS = {"up"}  # which it makes itself for each target
# By the series of one instance, each as "value x repetitions" at steps of 15 seconds: which alerts fire after five minutes.
SERVERS = {
    "all is well": ({"up": "1x40", "process_start_time_seconds": "1000x40", "stag_uptime_seconds": "5000+15x40", "stag_grace_remaining_seconds": "0x40",
                     "stag_events_total{reason='StoreHangs'}": "2x40", "stag_events_total{reason='ExportFolderClosed'}": "1x40",
                     "stag_config_last_reload_successful": "1x40", "stag_config_settings_awaiting_restart": "0x40",
                     "stag_store_oldest_operation_seconds": "1x40", "process_open_fds": "10x40", "process_max_fds": "100x40"}, set()),
    "it is down": ({"up": "0x40"}, {"StagDown"}),
    "it was started again": ({"up": "1x16 0x1 1x20", "process_start_time_seconds": "1000x16 _x1 2000x20", "stag_grace_remaining_seconds": "0x16 _x1 90-15x6 0x20"}, set()),
    "it is started again and again": ({"up": "1x40", "process_start_time_seconds": "1000+2x40"}, {"StagRestarts"}),
    "its grace period does not end": ({"up": "1x40", "stag_grace_remaining_seconds": "3600-15x40"}, {"StagGracePeriodLong"}),
    "a folder was closed before the first scrape": ({"up": "1x40", "stag_events_total{reason='ExportFolderClosed'}": "1x40", "stag_uptime_seconds": "1+15x40"},
                                                    {"StagExportImpaired"}),
    "its state directory is full": ({"up": "1x40", "stag_events_total{reason='ClientRecordsUnwritten'}": "0x12 1x28"}, {"StagStateUnwritten"}),
    "its disk hangs": ({"up": "1x40", "stag_store_oldest_operation_seconds{store='export /data'}": "0+15x40"}, {"StagStoreHangs", "StagStoreSlow"}),
    "its configuration has a mistake": ({"up": "1x40", "stag_config_last_reload_successful": "0x40"}, {"StagConfigurationRefused"}),
    "it has no descriptors left": ({"up": "1x40", "process_open_fds": "95x40", "process_max_fds": "100x40"}, {"StagDescriptorsLow"}),
}


def rules():
    """{alert: what stands in its lines, as text}"""
    with open(RULES) as file:
        text = re.sub(r"^ *#.*\n", "", file.read(), flags=re.M)
    found = {}
    for rule in text.split("- alert: ")[1:]:
        name, _, body = rule.partition("\n")
        assert name not in found, name
        found[name] = dict(re.findall(r"^ *(expr|for|runbook|labels|summary): (.*)$", body, re.M))
    return found


def labelled(series):
    """With the labels that Prometheus gives to what it scrapes."""
    name, _, labels = series.rstrip("}").partition("{")
    return name + "{" + ",".join(filter(None, ["job='stag',instance='a:9469'", labels])) + "}"


def expanded(series):
    """As promtool's files write "value x repetitions": the first value, and what follows it."""
    return re.sub(r"(\d+)([+-]\d+)?x(\d+)", lambda found: f"{found[1]}{found[2] or '+0'}x{int(found[3]) - 1}", series)


class Alerts(observe_test.Observed):
    def test_are_of_series_and_reasons_that_a_server_has(self):
        families = observe_test.parse(self.start() and self.scrape())
        reasons = {dict(labels)["reason"] for _, labels in families["stag_events_total"][2]}
        for alert, rule in rules().items():
            with self.subTest(alert):
                plain = re.sub(r'"[^"]*"', "", rule["expr"])
                named = set(re.findall(r"\b(?:(?:stag|process)_[a-z0-9_]+|up\b)", plain))
                self.assertTrue(named)
                self.assertEqual(named - set(families) - OF_PROMETHEUS, set())
                of_events = re.findall(r'reason=~?"([^"]*)"', rule["expr"])
                self.assertEqual(len(of_events), rule["expr"].count("stag_events_total"))
                self.assertEqual({word for words in of_events for word in words.split("|")} - reasons, set())

    def test_are_those_that_the_page_explains_with_their_severity(self):
        with open(observe_test.PAGE) as file:
            rows = re.findall(r"^\| `(Stag\w+)` \| (\w+) \|", file.read(), re.M)
        self.assertEqual(rows, [(alert, re.search(r"severity: (\w+)", rule["labels"])[1]) for alert, rule in rules().items()])

    def test_lead_to_a_section_that_is_there(self):
        sys.path.insert(0, os.path.join(ROOT, "tools"))
        import check_links
        for alert, rule in rules().items():
            page, _, heading = rule["runbook"].partition("#")
            self.assertIn(heading, check_links.headings(os.path.join(ROOT, page)), alert)

    def promtool(self, *arguments):
        promtool = shutil.which("promtool")
        if not promtool:
            self.skipTest("promtool is not installed, which reads alerts (Debian: prometheus)")
        done = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_are_rules_to_Prometheus(self):
        self.promtool("check", "rules", RULES)

    def holds(self, *tests):
        """JSON is YAML."""
        path = os.path.join(self.folder, "alerts.yml")
        with open(path, "w") as file:
            json.dump({"rule_files": [RULES], "evaluation_interval": "15s", "tests": tests}, file)
        self.promtool("test", "rules", path)

    def test_fire_where_they_should_and_only_there(self):
        self.holds(*({
            "name": name,
            "interval": "15s",
            "input_series": [{"series": labelled(each), "values": expanded(values)} for each, values in series.items()],
            "promql_expr_test": [{
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "5m",
                "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(firing)],
            }],
        } for name, (series, firing) in SERVERS.items()))

    def test_fire_where_there_is_no_server_to_ask(self):
        rule = rules()["StagUnmonitored"]
        self.holds({
            "interval": "15s",
            "alert_rule_test": [{
                "alertname": "StagUnmonitored",
                "eval_time": "6m",
                "exp_alerts": [{"exp_labels": {"severity": "critical", "job": "stag"},
                                "exp_annotations": {"summary": rule["summary"].strip('"'), "runbook": rule["runbook"]}}],
            }],
        })


if __name__ == "__main__":
    harness.main()
