#!/usr/bin/env python3
"""The alerts in packaging/prometheus: they name series and reasons that a running server has, the page explains them all, and Prometheus's own
promtool, where it is installed, finds them true of the servers that they are meant for and of no other ones. And what the dashboard in
packaging/grafana shows: series with labels that a running server has, by expressions that promtool takes."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness
import observe_test
from harness import PATIENCE, stag
from nfs4_client import LOOKUP, OK, PUTROOTFH, opaque, words

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RULES = os.path.join(ROOT, "packaging", "prometheus", "stag.rules.yml")
DASHBOARD = os.path.join(ROOT, "packaging", "grafana", "stag.json")
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


def promtool(case, *arguments):
    program = shutil.which("promtool")
    if not program:
        case.skipTest("promtool is not installed, which reads alerts (Debian: prometheus)")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    case.assertEqual(done.returncode, 0, done.stdout + done.stderr)


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

    def test_wake_nobody_for_a_reason_that_the_status_leaves_out(self):
        with open(os.path.join(ROOT, "src", "cli", "control", "status_commands.cc")) as file:
            shown = "\n".join(re.findall(r"(?:Reason kLimits|Event kTroubles)\[\] = \{(.*?)\};", file.read(), re.S))
        woken = {word for rule in rules().values() for words in re.findall(r'reason=~?"([^"]*)"', rule["expr"]) for word in words.split("|")}
        self.assertEqual(woken - set(re.findall(r"(?:Reason|Event)::(\w+)", shown)), set())

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

    def test_are_rules_to_Prometheus(self):
        promtool(self, "check", "rules", RULES)

    def holds(self, *tests):
        """JSON is YAML."""
        path = os.path.join(self.folder, "alerts.yml")
        with open(path, "w") as file:
            json.dump({"rule_files": [RULES], "evaluation_interval": "15s", "tests": tests}, file)
        promtool(self, "test", "rules", path)

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


def aggregated(expression):
    """(labels, what they are said of) for each "by" in it, with what stands behind as far as the next one."""
    parts = re.split(r"\bby ?\(([^)]*)\)", expression)
    return [(set(re.findall(r"\w+", labels)), behind) for labels, behind in zip(parts[1::2], parts[2::2])]


class Dashboard(observe_test.Observed):
    SERIES = r"\b((?:stag|process)_[a-z0-9_]+|up\b)"

    def shown(self):
        """(legend, expression) of all lines of all panels."""
        with open(DASHBOARD) as file:
            panels = json.load(file)["panels"]
        lines = [(line["legendFormat"], line["expr"]) for panel in panels for line in panel.get("targets", ())]
        self.assertGreater(len(lines), 30)
        return lines

    def labels_there(self):
        """{series: labels} of a server of which every series has been seen that has none at its start."""
        server = self.start()
        anna = self.ready_client(server)
        self.assertEqual(anna.in_session(words(PUTROOTFH), words(LOOKUP) + opaque(b"none"))[0], observe_test.NOENT)
        self.assertEqual(anna.in_session(words(PUTROOTFH), words(LOOKUP) + opaque(b"data"))[0], OK)
        self.assertEqual(stag("stat", server.url("/data/none") + "&version=3").returncode, 1)
        there = {"up": set()}
        for _, _, samples in observe_test.parse(self.scrape()).values():
            there.update({sample: {label for label, _ in labels} for sample, labels in samples})
        return {series: labels | {"instance", "job"} for series, labels in there.items()}

    def test_names_series_and_labels_that_a_server_has(self):
        there = self.labels_there()
        for legend, expression in self.shown():
            with self.subTest(expression):
                series = re.findall(self.SERIES, re.sub(r'"[^"]*"', '""', expression))
                self.assertTrue(series)
                self.assertEqual(set(series) - set(there), set())
                selectors = re.findall(self.SERIES + r"\{([^}]*)\}", expression)
                self.assertEqual(len(selectors), len(series))
                for name, matchers in selectors:
                    self.assertEqual(set(re.findall(r'(\w+)[=!]~?"', matchers)) - there[name], set())
                groups = aggregated(expression)
                for labels, behind in groups:
                    self.assertEqual(labels - there[re.search(self.SERIES, behind)[1]], set())
                if "histogram_quantile" in expression:
                    self.assertIn("le", groups[0][0])
                in_legend = set(re.findall(r"\{\{(\w+)\}\}", legend))
                self.assertEqual(in_legend - (groups[0][0] if groups else there[series[0]]), set())

    def test_tells_servers_apart_where_it_does_not_take_them_together(self):
        for legend, expression in self.shown():
            if not re.match(r"(sum|max|histogram_quantile)\b", expression):
                self.assertIn("{{instance}}", legend, expression)

    def test_leaves_out_reasons_that_there_are(self):
        reasons = {dict(labels)["reason"] for _, labels in observe_test.parse(self.start() and self.scrape())["stag_events_total"][2]}
        left_out = re.findall(r'reason!?=?~?"([^"]*)"', " ".join(expression for _, expression in self.shown()))
        self.assertTrue(left_out)
        self.assertEqual({reason for each in left_out for reason in each.split("|")} - reasons, set())

    def test_asks_what_Prometheus_can_answer(self):
        path = os.path.join(self.folder, "dashboard.yml")
        records = [{"record": f"dashboard:{number}", "expr": expression.replace("$__rate_interval", "5m")} for number, (_, expression) in enumerate(self.shown())]
        with open(path, "w") as file:
            json.dump({"groups": [{"name": "dashboard", "rules": records}]}, file)
        promtool(self, "check", "rules", path)


if __name__ == "__main__":
    harness.main()
