package console

import (
	"log/slog"
	"net/http"

	"runloop.dev/rlp/internal/serve/service"
)

// New makes the handler of / and /ui/. Who asks is in the context of a request
// ([service.CallerOf]); that it came from one of these pages, where it changes
// anything, was judged before.
func New(o Options) http.Handler {
	c := &console{Options: o, assets: loadAssets(), mux: http.NewServeMux(), verified: map[string]verifiedAt{}}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.pages = parsePages(c.assets, c.Now)
	for _, rt := range c.routes() {
		c.mux.Handle(rt.pattern, c.serve(rt))
	}
	c.mux.HandleFunc("GET /ui/assets/{hash}/{name}", c.assets.serve) // of the program, the same for everybody
	return c
}

// routes are all pages. Rights are asked before anything of a request is read.
func (c *console) routes() []route {
	const read, launch, operate = service.Read, service.Launch, service.Read | service.Operate
	return []route{
		{"GET /{$}", read, c.homePage},
		{"GET /ui/runs", read, c.runsPage},
		{"GET /ui/compare", read, c.comparePage},
		{"GET /ui/runs/{id}", read, c.runPage},
		{"GET /ui/runs/{id}/why/{seq}", read, c.whyPage},
		{"POST /ui/runs/{id}/cancel", read, c.cancelRun}, // whose run it is, the service knows
		{"GET /ui/launch", read | launch, c.chooseLaunch},
		{"GET /ui/agents", read, c.agentsPage},
		{"GET /ui/agents/{name}", read, c.agentPage},
		{"GET /ui/agents/{name}/launch", read | launch, c.launchPage},
		{"POST /ui/agents/{name}/launch", read | launch, c.launch},
		{"GET /ui/agents/{name}/policy", read, c.policyPage},
		{"POST /ui/agents/{name}/policy", operate, c.editPolicy}, // its text names paths of this host
		{"GET /ui/audit", read, c.auditPage},
		{"GET /ui/log", read, c.logPage},
		{"POST /ui/log/verify", read, c.verifyLog},
		{"GET /ui/lanes", read, c.lanesPage},
		{"POST /ui/lanes", operate, c.tryLanes}, // it starts programs
		{"/", read, func(*http.Request, *service.Caller) (*view, error) { return nil, service.ErrNotFound }},
	}
}
