package hostcalls

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/strictjson"
)

// callAttached has everything that t needs admitted, one by one, and then the
// program started or the request sent. The first that is missing ends the call.
func (h *Host) callAttached(ctx context.Context, t *attachedTool, arguments []byte) ([]byte, error) {
	input, err := t.Input(arguments)
	if err != nil && h.reaches(t) { // who may not call it learns nothing of it
		h.cfg.Gate.Refuse(t.op, t.Own(), t.Scope(), caps.InvalidRequest)
		return nil, invalid(fmt.Errorf("arguments: %w", err))
	}
	for _, need := range t.Needs {
		if a := h.cfg.Gate.AdmitTree(t.op, need, h.cfg.shown(need)); !a.OK() {
			return nil, denied(a.Denial, "")
		}
	}
	for _, r := range t.Later { // those that are held are admitted by what starts or sends
		if !h.cfg.Gate.Would(t.op, r) {
			return nil, h.lacks(t, r)
		}
	}
	switch {
	case err != nil:
		return nil, h.lacks(t, t.Own())
	case t.Program != nil:
		return h.startTool(ctx, t, input)
	}
	return h.sendTool(ctx, t, input)
}

// lacks is the refusal of a call that lacks r, for the policy's reason.
func (h *Host) lacks(t *attachedTool, r caps.Request) error {
	return h.cfg.refuse(t.op, r, h.cfg.shown(r), caps.Unavailable, "")
}

// startTool starts the program of t as exec_run starts one.
func (h *Host) startTool(ctx context.Context, t *attachedTool, input []byte) ([]byte, error) {
	h.moved += costProcess - costEffect // what the price of mcp_call leaves out
	p := t.Program
	r := execReq{
		asked: p.Command, program: Program{File: p.Command, Name: p.Command}, argv: append([]string{p.Command}, p.Args...),
		stdin: string(input), text: t.ID, timeout: p.Timeout, op: t.op, within: t.Files,
	}
	if r.timeout == 0 {
		r.timeout = defaultTimeout
	}
	permit, err := judgeTool(ctx, h, toolCall{t, strings.Join(r.argv, " "), input}, execCall, &r)
	if err != nil {
		return nil, err
	}
	return h.recorded(t.op, func() ([]byte, error) {
		for _, f := range p.Env {
			value, err := h.placed(ctx, t.op, f)
			if err != nil {
				return nil, err
			}
			r.env = append(r.env, envVar{f.Name, value})
		}
		e, err := h.runProgram(ctx, permit, &r)
		if err != nil {
			return nil, err
		}
		return h.printed(t, input, e)
	})
}

// printed is the result of a program.
func (d *redactor) printed(t *attachedTool, input []byte, e *Ended) ([]byte, error) {
	stdout, cut := d.output(e.Stdout, e.StdoutCut, e.StdoutMax)
	stderr, _ := d.output(e.Stderr, e.StderrCut, e.StderrMax)
	t.spent.Charge(input, stdout)
	switch {
	case e.TimedOut:
		return nil, &Fail{Errno: TimedOut, Hint: "the tool did not end in time"}
	case e.ExitCode != 0:
		return nil, &toolFailure{"the tool ended with exit code " + strconv.Itoa(e.ExitCode), string(stderr)}
	case cut:
		return nil, &Fail{Errno: TooBig, Hint: "the tool printed more than a guest is given"}
	}
	return t.result(stdout)
}

// sendTool sends the request of t as net_http sends one.
func (h *Host) sendTool(ctx context.Context, t *attachedTool, input []byte) ([]byte, error) {
	query, body := "", string(input)
	if m := t.Request.Method; m == "GET" || m == "HEAD" {
		values, err := queryOf(input)
		if err != nil {
			h.cfg.Gate.Refuse(t.op, t.Own(), t.Scope(), caps.InvalidRequest)
			return nil, invalid(err)
		}
		query, body = values.Encode(), ""
	}
	r, err := t.request(query)
	if err != nil {
		h.cfg.Gate.Refuse(t.op, t.Own(), t.Scope(), caps.InvalidRequest)
		return nil, invalid(err)
	}
	r.body, r.text, r.op = body, t.ID+"\n"+query, t.op
	permit, err := judgeTool(ctx, h, toolCall{t, r.method + " " + r.Shown, input}, httpCall, &r)
	if err != nil {
		return nil, err
	}
	return h.recorded(t.op, func() ([]byte, error) {
		for i, f := range t.Request.Headers {
			value, err := h.placed(ctx, t.op, f)
			if err != nil {
				return nil, err
			}
			r.header[i].values = []string{value}
		}
		if body != "" && !slices.ContainsFunc(r.header, func(f httpField) bool { return f.name == contentType }) {
			r.header = append(r.header, httpField{contentType, []string{"application/json"}})
		}
		out, status, err := h.send(ctx, permit, &r)
		if err != nil {
			t.spent.Charge(input, nil) // it may have arrived
			return nil, err
		}
		said := out[4+binary.LittleEndian.Uint32(out):]
		t.spent.Charge(input, said)
		if status < 200 || status > 299 {
			return nil, &toolFailure{"the tool's server answers with status " + strconv.Itoa(status), string(said)}
		}
		if len(said) > MaxToolResult {
			return nil, &Fail{Errno: TooBig, Hint: "the result of a tool is at most 4 MiB"}
		}
		return t.result(said)
	})
}

// A toolCall is one call of a tool: what it reaches, and with what.
type toolCall struct {
	*attachedTool
	target string
	input  []byte
}

// judgeTool has the program or request itself judged by the very rules of the
// call that it is made of, and by what the tool says of its cost and of who has
// to be asked.
func judgeTool[R any](ctx context.Context, h *Host, t toolCall, g gated[R], r *R) (gate.Permit, error) {
	within := g.budget
	why := ""
	g.budget = func(h *Host, r R) (caps.Code, bool) {
		if code, over := within(h, r); over {
			return code, over
		}
		if over := t.spent.Over(t.input, t.Tokens, t.MicroUSD); over != "" {
			why = over
			return caps.BudgetExhausted, true
		}
		return 0, false
	}
	g.confirm = func(h *Host, _ R) (Question, bool) {
		return Question{Tool: t.ID, Description: t.Description, Target: t.target, Arguments: string(t.input)},
			(t.Confirm || h.cfg.ConfirmExternal) && h.reaches(t.attachedTool)
	}
	a, err := g.judge(ctx, h, t.op, r)
	if no, ok := err.(*refused); ok && why != "" && no.Code == caps.BudgetExhausted {
		no.hint = why
	}
	return a.Permit, err
}

// placed is a header or variable, with handles where secrets belong. The
// values are put in by what sends or starts, each after the gate has let it.
func (h *Host) placed(ctx context.Context, op *gate.Op, f ToolField) (string, error) {
	var b strings.Builder
	for _, p := range f.Parts {
		if p.Secret == "" {
			b.WriteString(p.Text)
			continue
		}
		r := secretReq{p.Secret}
		if h.cfg.Secrets == nil {
			return "", h.cfg.refuse(op, r.request(), hiddenSecret, caps.Unavailable, "")
		}
		handle, err := h.cfg.Secrets.Handle(ctx, p.Secret)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", h.cfg.refuse(op, r.request(), hiddenSecret, caps.SecretUnknown, "")
		case err != nil:
			h.cfg.warn(err)
			return "", h.cfg.refuse(op, r.request(), hiddenSecret, caps.Unavailable, "")
		}
		b.WriteString(handle)
	}
	return b.String(), nil
}

// queryOf is the arguments of a call as the query of a request.
func queryOf(input []byte) (url.Values, error) {
	values := url.Values{}
	err := strictjson.Object(string(input), func(d *strictjson.Reader, name string) error {
		if d.Kind() == '[' {
			return d.Items(func(d *strictjson.Reader, _ int) error { return queryValue(d, values, name) })
		}
		return queryValue(d, values, name)
	})
	if err != nil {
		return nil, strictjson.Under("arguments", err)
	}
	return values, nil
}

func queryValue(d *strictjson.Reader, values url.Values, name string) (err error) {
	var text string
	switch d.Kind() {
	case '"':
		text, err = d.Text()
	case '{', '[':
		err = errors.New("goes into a query, where there are texts, numbers and lists of them")
	default:
		text, err = d.Raw()
	}
	values.Add(name, text)
	return err
}

// attachedFirst is mcp_call as it is: what is asked of the server "tools" goes to
// the tools that the bundle attaches, and the rest to d.
func attachedFirst(d def) def {
	bind := d.bind
	d.bind = func(h *Host, op *gate.Op) body {
		b := bind(h, op)
		others := b.call
		b.call = func(ctx context.Context, in []string, place int) ([]byte, gate.Answer, error) {
			r, err := decodeMCP(in)
			if err != nil || r.server != ToolServer {
				return others(ctx, in, place)
			}
			out, err := h.attached(ctx, op, &r)
			return out, gate.Answer{}, err
		}
		return b
	}
	return d
}

// attached answers what is asked of the attached tools: a call, or, without the
// name of a tool, which there are.
func (h *Host) attached(ctx context.Context, op *gate.Op, r *mcpReq) ([]byte, error) {
	if err := h.nameTools(op); err != nil {
		return nil, err
	}
	if r.tool == "" {
		return h.listAttached()
	}
	i := slices.IndexFunc(h.tools, func(t *attachedTool) bool { return t.ID == r.tool })
	if i < 0 {
		h.cfg.Gate.Refuse(op, caps.Request{Family: caps.MCP, Name: ToolServer}, r.target(), caps.InvalidRequest)
		return nil, &Fail{
			Errno: Noent,
			Hint:  "the bundle attaches no such tool; a call without a tool lists those that there are",
		}
	}
	out, err := h.callAttached(ctx, h.tools[i], r.arguments)
	if err != nil {
		return nil, ofTool(h.tools[i], err)
	}
	return out, nil
}

// result is what a call gives the guest: JSON as it is, anything else as a text.
func (t *attachedTool) result(output []byte) ([]byte, error) {
	result, err := t.Result(output)
	if err != nil {
		return nil, &toolFailure{"the tool's result is not what its result_schema says", err.Error()}
	}
	return result, nil
}

// A toolFailure is a tool that did not do what it was called for: the guest may
// read what it said, records show that it failed.
type toolFailure struct{ what, said string }

func (f *toolFailure) Error() string { return f.what }

func (f *toolFailure) Unwrap() error {
	const most = 400
	said := strings.ToValidUTF8(f.said[:min(len(f.said), most)], "\ufffd")
	if said = strings.TrimSpace(said); said != "" {
		said = ": " + said
	}
	return &Fail{Errno: IO, Hint: f.what + said}
}
