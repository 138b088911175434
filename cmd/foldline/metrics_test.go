package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/foldline/foldline/internal/testkit"
)

// exposition is the label names of every metric that /metrics shows.
type exposition map[string]map[string]bool

func scrape(t *testing.T, url string) exposition {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	require.NoError(t, err)
	out := exposition{}
	for name, f := range families {
		labels := map[string]bool{"instance": true, "le": f.GetType().String() == "HISTOGRAM"}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		if f.GetType().String() == "HISTOGRAM" {
			out[name+"_bucket"], out[name+"_sum"], out[name+"_count"] = labels, labels, labels
			continue
		}
		out[name] = labels
	}
	return out
}

var (
	inQuery  = regexp.MustCompile(`foldline_[a-z_]+`)
	byLabels = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
	named    = regexp.MustCompile(`(?:\$labels\.|\{\{)([a-z_]+)`)
)

// check requires that every metric of a query is shown, with every label that the query or its texts name.
func (e exposition) check(t *testing.T, where, query string, texts ...string) {
	t.Helper()
	metrics := inQuery.FindAllString(query, -1)
	require.NotEmpty(t, metrics, where)
	for _, name := range metrics {
		require.Contains(t, e, name, "%s: a fresh process does not show it, so its first increase would be missed", where)
	}
	var labels []string
	for _, m := range byLabels.FindAllStringSubmatch(query, -1) {
		labels = append(labels, strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")...)
	}
	for _, m := range named.FindAllStringSubmatch(strings.Join(texts, " "), -1) {
		labels = append(labels, m[1])
	}
	for _, label := range labels {
		found := false
		for _, name := range metrics {
			found = found || e[name][label]
		}
		require.True(t, found, "%s: no metric of %q has the label %s", where, query, label)
	}
}

// What deploy alerts on and draws is what the processes show, by exact name and label, before anything has gone wrong.
func TestDeployedAlertsAndDashboard(t *testing.T) {
	data, out := serving(t, "--input", "node:T="+write(t, `{"id":"a","n":1}`), "--http-listen", "127.0.0.1:0", "--log-level", "info")
	address := regexp.MustCompile(`http endpoint" address=(\S+)`).FindStringSubmatch(out.String())
	require.NotNil(t, address, out.String())
	refused := foldline(t, "--data", data, "put", "node:T", write(t, `{"id":"a","n":"x"}`))
	require.NotZero(t, refused.code)
	ok(t, "--data", data, "put", "node:T", write(t, `{"id":"b","n":2}`), "--wait")
	var shown exposition
	testkit.WaitFor(t, "the metrics of a fold", func() bool {
		shown = scrape(t, "http://"+address[1]+"/metrics")
		_, there := shown["foldline_fold_duration_seconds_bucket"]
		return there
	})
	// Nothing is shown of a table that is not held or has no repeated keys, and no message id was sent twice.
	shown["foldline_fold_tables_held"] = map[string]bool{"table": true, "state": true}
	shown["foldline_fold_duplicate_keys"] = map[string]bool{"table": true}
	shown["foldline_ingest_duplicates_total"] = map[string]bool{}

	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "foldline.rules.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &rules))
	require.NotEmpty(t, rules.Groups)
	for _, r := range rules.Groups[0].Rules {
		require.NotEmpty(t, r.Annotations["action"], r.Alert)
		shown.check(t, r.Alert, r.Expr, r.Annotations["summary"], r.Annotations["action"])
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	text, err = os.ReadFile(filepath.Join("..", "..", "deploy", "grafana", "foldline.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &board))
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			shown.check(t, p.Title, target.Expr, target.LegendFormat)
		}
	}
}
