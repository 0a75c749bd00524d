package telemetry_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/internal/serve/telemetry"
)

// everything is what /metrics says when there is something of each metric.
func everything(t *testing.T) string {
	t.Helper()
	w := watch(t, telemetry.Options{
		Load:    func() service.Load { return service.Load{} },
		LogSize: func() (uint64, bool) { return 1, true }, LogUnsealed: func() (uint64, bool) { return 1, true },
		Backlog: func() (int64, bool) { return 1, true },
	})
	defer w.Close(t.Context())
	run(t, w, &host{calls: 2}, &service.Request{Agent: "writer"})
	w.Requests(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/run", nil))
	return text(t, w.Metrics())
}

var metricName = regexp.MustCompile(`\brlp_[a-z_]+`)

// Every query of the dashboard, and every name on the page, is of a metric that
// is told, and each that is told is on both.
func TestDashboardAndPageAreOfMetricsThatAreTold(t *testing.T) {
	told := everything(t)
	families := map[string]bool{}
	for line := range strings.Lines(told) {
		if rest, is := strings.CutPrefix(line, "# TYPE "); is {
			name, _, _ := strings.Cut(rest, " ")
			families[name] = false
		}
	}
	data, err := os.ReadFile("../../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			names := metricName.FindAllString(q.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s: %s asks for no metric of ours", p.Title, q.Expr)
			}
			for _, name := range names {
				if !strings.Contains(told, "\n"+name+" ") && !strings.Contains(told, "\n"+name+"{") {
					t.Errorf("%s: nobody tells %s", p.Title, name)
				}
				families[strings.TrimSuffix(name, "_bucket")] = true
			}
		}
	}
	page, err := os.ReadFile("../../../docs/watching.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := metricName.FindAllString(string(page), -1)
	for name, shown := range families {
		if !shown {
			t.Errorf("%s is not on the dashboard", name)
		}
		if !strings.Contains(strings.Join(listed, " ")+" ", name+" ") {
			t.Errorf("%s is not on the page", name)
		}
	}
	for _, name := range listed {
		if _, is := families[name]; !is {
			t.Errorf("the page lists %s, which nobody tells", name)
		}
	}
}
