package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"runloop.dev/rlp/internal/base/strictjson"
)

// A Request is the body of POST /run. Fields that are left out narrow nothing.
type Request struct {
	Agent       string            `json:"agent,omitempty"`  // the name of an installed one; or
	Bundle      string            `json:"bundle,omitempty"` // the base64 of an archive, or oci://HOST/NAME:TAG
	Input       json.RawMessage   `json:"input,omitempty"`
	InputBase64 []byte            `json:"input_base64,omitzero"` // in the place of Input: the bytes, whatever the agent takes
	Args        []string          `json:"args,omitempty"`
	Limits      map[string]int64  `json:"limits,omitempty"`
	Profiles    []string          `json:"profiles,omitempty"`
	Policy      string            `json:"policy,omitempty"` // the text of an override
	Allow       []string          `json:"allow,omitempty"`
	Deny        []string          `json:"deny,omitempty"`
	Params      map[string]string `json:"params,omitempty"`
	Seed        *uint64           `json:"seed,omitempty"`
	Wait        bool              `json:"wait"`
}

// A Run is what the service tells of one.
type Run struct {
	RunID     string          `json:"run_id"`
	TraceID   string          `json:"trace_id"`
	Tenant    string          `json:"tenant"`
	Agent     string          `json:"agent"`
	Version   string          `json:"version,omitempty"`
	Caller    string          `json:"caller"`
	State     string          `json:"state"` // queued, running, done, refused or failed
	Outcome   string          `json:"outcome,omitempty"`
	ExitCode  int             `json:"exit_code"`
	Message   string          `json:"message,omitempty"`
	QueuedAt  time.Time       `json:"queued_at,omitzero"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`
	QueueMS   int64           `json:"queue_ms"`
	WallMS    int64           `json:"wall_ms"`
	Allowed   int64           `json:"allowed"`
	Denied    int64           `json:"denied"`
	ParentRun string          `json:"parent_run,omitempty"`
	Report    json.RawMessage `json:"report,omitempty"` // of one that ended lately
}

// Ended reports whether nothing more comes of r.
func (r *Run) Ended() bool { return r.State != "queued" && r.State != "running" }

// Run asks for a run and returns its report, however it ended. While it waits,
// the end of ctx is the end of the run.
func (c *Client) Run(ctx context.Context, q *Request) (json.RawMessage, error) {
	ask := *q
	ask.Wait = true
	return c.ask(ctx, &ask)
}

// Begin asks for a run and returns its id, and does not wait for it.
func (c *Client) Begin(ctx context.Context, q *Request) (runID string, err error) {
	ask := *q
	ask.Wait = false
	data, err := c.ask(ctx, &ask)
	if err != nil {
		return "", err
	}
	var taken Run
	if err := strictjson.Unmarshal(data, &taken, ofService); err != nil || taken.RunID == "" {
		return "", fmt.Errorf("the answer of the service names no run: %s", shape(data))
	}
	return taken.RunID, nil
}

func (c *Client) ask(ctx context.Context, q *Request) (json.RawMessage, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	return c.document(ctx, "POST", "/run", body)
}

// Runs are at most limit runs, the newest first.
func (c *Client) Runs(ctx context.Context, limit int) ([]Run, error) {
	data, err := c.document(ctx, "GET", "/runs?limit="+strconv.Itoa(limit), nil)
	if err != nil {
		return nil, err
	}
	var page struct {
		Runs []Run `json:"runs"`
	}
	if err := strictjson.Unmarshal(data, &page, ofService); err != nil {
		return nil, fmt.Errorf("reading the list of runs: %w", err)
	}
	return page.Runs, nil
}

// Get is one run.
func (c *Client) Get(ctx context.Context, id string) (*Run, error) {
	data, err := c.document(ctx, "GET", "/runs/"+url.PathEscape(id), nil)
	if err != nil {
		return nil, err
	}
	r := &Run{}
	if err := strictjson.Unmarshal(data, r, ofService); err != nil {
		return nil, fmt.Errorf("reading what is told of the run: %w", err)
	}
	return r, nil
}

// Cancel ends a run.
func (c *Client) Cancel(ctx context.Context, id string) error {
	_, err := c.document(ctx, "POST", "/runs/"+url.PathEscape(id)+"/cancel", nil)
	return err
}

// Capabilities is the surface that is left to requests, as it was answered.
func (c *Client) Capabilities(ctx context.Context) (json.RawMessage, error) {
	return c.document(ctx, "GET", "/capabilities", nil)
}

// shape says what an answer was like, without quoting all of it.
func shape(data []byte) string {
	const most = 80
	if len(data) > most {
		data = data[:most]
	}
	return strconv.QuoteToASCII(string(data))
}
