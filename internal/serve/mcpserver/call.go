package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/serve/service"
)

// followTime is how long records are waited for when a run has ended.
const followTime = 3 * time.Second

// run calls an agent and waits for its end. When ctx ends, so does the run.
func (ss *session) run(ctx context.Context, c *service.Caller, t *tool, req *mcp.CallToolRequest,
	input json.RawMessage,
) *mcp.CallToolResult {
	q := &service.Request{Door: service.MCP, Agent: t.agent.Name, Input: input}
	q.TraceID, q.ParentSpan = traceOf(req)
	r, err := ss.of.opt.Service.Submit(ctx, c, q, "")
	if err != nil {
		return ss.failed(c, t, nil, err)
	}
	defer ss.of.await(req, r)()
	f := &follower{of: ss.of.opt.Service, caller: c, run: r.ID()}
	following, stop := context.WithCancel(ctx)
	defer stop()
	followed := make(chan struct{})
	live := false
	if send := progressOf(req); send != nil {
		live, f.teller = true, newTeller(following, ss.of.opt.Now, send)
		guard.Go(func() error { f.follow(following); return nil }, func(err error) {
			ss.of.broke(err)
			close(followed)
		})
	}
	select {
	case <-r.Done():
	case <-ctx.Done():
		_ = ss.of.opt.Service.Cancel(context.WithoutCancel(ctx), c, r.ID()) // it may have ended
		<-r.Done()
	}
	state := r.StateFor(c)
	switch {
	case live:
		late := time.AfterFunc(followTime, stop)
		<-followed
		f.teller.end(following)
		late.Stop()
	case state.Denied > 0 && ctx.Err() == nil:
		within, cancel := context.WithTimeout(ctx, followTime)
		f.follow(within)
		cancel()
	}
	report, err := r.Report(c)
	if err != nil || report == nil {
		return ss.failed(c, t, &state, err)
	}
	return answer(&state, report, &f.trail)
}

// traceOf is the trace that a call is part of: what its own message says, which
// is the same over stdio, or else the head of the request that brought it.
func traceOf(req *mcp.CallToolRequest) (trace, span string) {
	if text, ok := req.Params.Meta["traceparent"].(string); ok {
		return service.ParseTraceParent(text)
	}
	if req.Extra == nil || len(req.Extra.Header["Traceparent"]) != 1 {
		return "", ""
	}
	return service.ParseTraceParent(req.Extra.Header["Traceparent"][0])
}

// failed is a call of which nothing was executed.
func (ss *session) failed(c *service.Caller, t *tool, state *service.State, err error) *mcp.CallToolResult {
	var policy *service.ViolationError
	var fields service.FieldErrors
	var busy *service.BusyError
	var away *service.UnavailableError
	switch {
	case errors.As(err, &policy):
		return refused(t, policy)
	case errors.As(err, &fields), errors.As(err, &busy), errors.As(err, &away), errors.Is(err, service.ErrDraining),
		errors.Is(err, service.ErrForbidden), errors.Is(err, service.ErrNotFound):
		return said(fmt.Errorf("agent %s was not launched: %w", t.agent.Name, err))
	}
	id := ""
	if state != nil {
		id = state.RunID
	}
	ss.of.opt.Log.Error("mcp.call", "run_id", id, "tenant", c.Tenant, "agent", t.agent.Name, "kind",
		fmt.Sprintf("%T", err))
	return said(fmt.Errorf("agent %s was not launched, for a reason that only the log of this host says (run %s)",
		t.agent.Name, id))
}
