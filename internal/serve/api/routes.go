package api

import (
	"fmt"
	"net/http"
	"slices"

	"runloop.dev/rlp/internal/serve/service"
)

// A route is a row of the table: what is served, and all that is told of it.
type route struct {
	method, path string
	summary      string
	open         bool           // to anybody
	may          service.Rights // any of them will do; 0: nobody may
	query        []parameter
	header       []parameter
	body         string // schema of the body; "": it takes none
	answers      []told
	serve        func(*server, http.ResponseWriter, *http.Request, *service.Caller) error
}

// A parameter is one of the query or of the head.
type parameter struct{ name, about string }

// A told answer is one that a route gives, with the schema of its body.
type told struct {
	status int
	schema string // "": none
	about  string
	kind   string // content type; "": JSON
}

// permits refuses callers without the right.
func (rt *route) permits(c *service.Caller) error {
	switch {
	case rt.open:
		return nil
	case c == nil || c.Tenant == "":
		return errNobody
	case c.May&rt.may == 0:
		return fmt.Errorf("this takes the right to %s: %w", rt.may, service.ErrForbidden)
	}
	return nil
}

// anyRight is that of whoever was proved: there is no token without a right.
const anyRight = service.Launch | service.Read | service.Operate

const (
	lines  = "application/x-ndjson"
	events = "text/event-stream"
	plain  = "text/plain"
)

// routes are all that there is, but for /mcp and the pages.
func routes() []route {
	return slices.Concat(runRoutes(), followRoutes(), logRoutes(), openRoutes())
}

// runRoutes are those of runs, and of what there is to run.
func runRoutes() []route {
	const act = service.Launch | service.Operate
	return []route{
		{
			method: "POST", path: "/run", summary: "Run an agent", may: service.Launch, body: "RunRequest",
			serve: (*server).postRun,
			header: []parameter{
				{"Idempotency-Key", "the same key is the same run for 24 hours"},
				{"traceparent", "the trace that asks (W3C)"},
			},
			answers: append([]told{
				{200, "Report", "what rlp launch --json prints, however the run ended", ""},
				{202, "Acceptance", `where the run is, with "wait": false`, ""},
			}, problems(400, 403, 404, 408, 409, 413, 415, 429)...),
		},
		{
			method: "GET", path: "/capabilities", summary: "What is left to requests at most", may: anyRight,
			serve: (*server).getCapabilities,
			query: []parameter{{"door", "http, or mcp"}}, answers: append([]told{{200, "Surface", "the effective surface", ""}},
				problems(400)...),
		},
		{
			method: "GET", path: "/agents", summary: "Installed agents", may: anyRight, serve: (*server).getAgents,
			answers: append([]told{{200, "Agents", "by name", ""}}, problems(400)...),
		},
		{
			method: "GET", path: "/runs", summary: "Runs, the newest first", may: anyRight, serve: (*server).getRuns,
			query: []parameter{
				{"agent", "of this agent"},
				{"state", "queued, running, done, refused or failed"},
				{"limit", "1 to 500; 50"},
				{"before", "next of an earlier answer"},
			},
			answers: append([]told{{200, "Runs", "a page of them", ""}}, problems(400)...),
		},
		{
			method: "GET", path: "/runs/{id}", summary: "One run, with its report while that is kept", may: anyRight,
			serve:   (*server).getRun,
			answers: append([]told{{200, "Run", "the run", ""}}, problems(400, 404)...),
		},
		{
			method: "POST", path: "/runs/{id}/cancel", summary: "End a run", may: act, serve: (*server).postCancel,
			answers: append([]told{{202, "Acceptance", "it is being ended", ""}}, problems(400, 403, 404)...),
		},
		{
			method: "POST", path: "/runs/{id}/input", summary: "Give a run the input of its next turn", may: act,
			body: "InputRequest", serve: (*server).postInput,
			answers: append([]told{{202, "Acceptance", "it is there for the run", ""}}, problems(400, 403, 404, 408, 413, 415,
				429)...),
		},
	}
}

// followRoutes are streams.
func followRoutes() []route {
	after := parameter{"after", "go on behind the message of this id"}
	last := parameter{"Last-Event-ID", "the same, as browsers send it"}
	return []route{
		{
			method: "GET", path: "/runs/{id}/events", summary: "Follow the records of a run", may: anyRight,
			serve: (*server).getRunEvents,
			query: []parameter{after}, header: []parameter{last},
			answers: append([]told{
				{200, "", "id: run_seq, event: the kind, data: the record as /audit has it; event: end comes last, with the " +
					"state of the run", events},
				{204, "", "there is nothing more, and will not be", ""},
			}, problems(400, 404, 429)...),
		},
		{
			method: "GET", path: "/events", summary: "Follow the life of all runs", may: anyRight, serve: (*server).getEvents,
			query: []parameter{after}, header: []parameter{last},
			answers: append([]told{{200, "", "data: {id, name, run}", events}}, problems(400, 403, 429)...),
		},
	}
}

// logRoutes are for those who see what others did.
func logRoutes() []route {
	const see = service.Read | service.Operate
	return []route{
		{
			method: "GET", path: "/audit", summary: "Records of the log, in order", may: see, serve: (*server).getAudit,
			query: []parameter{
				{"run", "of this run: its id, or the beginning or the end of one"},
				{"agent", "of this agent"},
				{"family", "decisions on this family, such as fs or fs.read"},
				{"decision", "allow or deny"},
				{"since", "a time (RFC 3339), or how long ago (90m)"},
				{"limit", "1 to 1000; 100; of lines, all"},
				{"cursor", "next of an earlier answer, or the seq of a record"},
			},
			header: []parameter{{"Accept", lines + " for a record a line"}},
			answers: append([]told{{200, "Records", "a page of them", ""}, {200, "", "a record a line", lines}},
				problems(400, 403)...),
		},
		{
			method: "GET", path: "/audit/head", summary: "The tree of the log", may: see, serve: (*server).getHead,
			answers: append([]told{{200, "Head", "its size and its root", ""}}, problems(400, 403)...),
		},
		{
			method: "GET", path: "/metrics", summary: "Metrics for Prometheus", may: see, serve: (*server).getMetrics,
			query:   []parameter{{"name[]", "only these"}},
			answers: append([]told{{200, "", "text", plain}}, problems(400, 403, 404)...),
		},
	}
}

// openRoutes are for anybody.
func openRoutes() []route {
	return []route{
		{
			method: "GET", path: "/healthz", summary: "The service is there", open: true, serve: (*server).getHealth,
			answers: append([]told{{200, "Health", "ok", ""}}, problems(400)...),
		},
		{
			method: "GET", path: "/readyz", summary: "The service takes runs", open: true, serve: (*server).getReady,
			answers: append([]told{{200, "Health", "ready", ""}, {503, "Health", "draining or unavailable", ""}},
				problems(400)...),
		},
		{
			method: "GET", path: "/openapi.json", summary: "This document", open: true, serve: (*server).getOpenAPI,
			answers: append([]told{{200, "Object", "OpenAPI 3.1", ""}}, problems(400)...),
		},
	}
}

// problems are answers that say what was wrong.
func problems(statuses ...int) []told {
	var list []told
	for _, status := range statuses {
		list = append(list, told{status, "Problem", http.StatusText(status), ""})
	}
	return list
}
