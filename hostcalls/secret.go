package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// Secrets are the secrets of one run. The guest only ever holds handles.
type Secrets interface {
	// Handle is the opaque name, rlsec_..., of the secret id in this run:
	// fs.ErrNotExist when there is no such secret, errors.ErrUnsupported when
	// what keeps them is not available.
	Handle(ctx context.Context, id string) (string, error)
	// Named are the words of text that begin like handles, each once.
	Named(text string) []string
	// Fill puts values in the place of the handles in text, each after admit has
	// permitted its id: fs.ErrNotExist when what begins like a handle is none of
	// this run's.
	Fill(text string, admit func(id string) error) (string, error)
	// Sending notes that the value of the secret id is about to be sent to host, a
	// canonical host:port: what is not noted must not be sent.
	Sending(id, host string) error
	// Hear is told of a host that has answered, before anybody looks at what it
	// says: the values of ids and of what was sent there before are looked for from
	// then on. What it cannot look for it says once.
	Hear(ctx context.Context, host string, ids []string) error
	// Knows reports whether there is any value to look for.
	Knows() bool
	// Scrub puts a mark in the place of every value of this run in p, however
	// it is encoded, and tells replaced whose it was; it is p itself when there
	// is none.
	Scrub(p []byte, replaced func(id string)) []byte
	// Stream is Scrub for a text that comes in pieces: the function gives what
	// can be passed on, and the rest when end is set.
	Stream(replaced func(id string)) func(p []byte, end bool) []byte
}

// A Destination is where a value is about to go: one of the two.
type Destination struct {
	Host    string // canonical host:port
	Program string // absolute path
}

// request asks for the use of the secret id. A program is no host: it needs a
// secret that is granted without hosts.
func (d Destination) request(id string) caps.Request {
	r := caps.Request{Family: caps.Secrets, Mode: caps.Use, Name: id}
	if d.Program == "" {
		r.Name += "@" + d.Host
	}
	return r
}

// fill puts the values of this run's secrets in the place of their handles in
// text. Each secret passes the gate again: what was taken from the run since it
// got the handle is not put in. What begins like a handle and is none of this
// run's is refused.
func (h *Host) fill(_ context.Context, op *gate.Op, text string, dst Destination) (string, error) {
	if h.cfg.Secrets == nil {
		return text, nil
	}
	out, err := h.cfg.Secrets.Fill(text, func(id string) error {
		req := dst.request(id)
		if _, err := h.permit(op, req, h.shownSecret(req), nil); err != nil {
			return err
		}
		if dst.Host == "" {
			return nil
		}
		if err := h.cfg.Secrets.Sending(id, dst.Host); err != nil {
			h.warn(err)
			return h.refuse(op, req, h.shownSecret(req), caps.Unavailable, "")
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		any := caps.Request{Family: caps.Secrets, Mode: caps.Use, Name: "*"}
		return "", h.refuse(op, any, hiddenSecret, caps.SecretUnknown, "")
	}
	return out, err
}

// hiddenSecret stands in records for a secret that was denied: what an agent
// asks for may be a name that it should not even know.
const hiddenSecret = "secret"

// shownSecret is what records show of a request.
func (h *Host) shownSecret(r caps.Request) string {
	if h.cfg.Gate.Set().Check(r).Allow {
		return r.Name
	}
	return hiddenSecret
}

// scrub takes the values of this run's secrets out of p: of what goes to the
// guest, and of what it hands to the host.
func (h *Host) scrub(p []byte) []byte {
	if h.cfg.Secrets == nil {
		return p
	}
	return h.cfg.Secrets.Scrub(p, h.replaced)
}

func (h *Host) scrubText(s string) string {
	if h.cfg.Secrets == nil || s == "" {
		return s
	}
	if out := h.cfg.Secrets.Scrub(bytesOf(s), h.replaced); string(out) != s {
		return string(out)
	}
	return s
}

// scrubFirst is scrub for a value that is masked next: a mask in the middle of a
// secret would leave its ends. It leaves the structure that masks go by, and to
// the scrub of the answer what stands across it.
func (h *Host) scrubFirst(value []byte) []byte {
	out := h.scrub(value)
	if string(out) == string(value) || json.Valid(value) && !json.Valid(out) {
		return value
	}
	return out
}

func (h *Host) replaced(id string) {
	if h.cfg.Replaced != nil {
		h.cfg.Replaced(id, h.calling)
	}
}

// scrubResult keeps a result JSON: where a value was more than a part of a
// string, the whole becomes one.
func (h *Host) scrubResult(result []byte) []byte {
	out := h.scrub(result)
	if len(out) == 0 || json.Valid(out) {
		return out
	}
	text, err := json.Marshal(string(out))
	if err != nil {
		return nil
	}
	return text
}

var secretHandle = define("secret_handle", 1, caps.Secrets, gated[secretReq]{
	decode:  decodeSecret,
	touches: func(r secretReq) (caps.Request, string) { return r.request(), hiddenSecret },
	target:  func(h *Host, r secretReq) string { return h.shownSecret(r.request()) },
	payload: func(r secretReq) [][]byte { return [][]byte{[]byte(r.id)} },
	budget: func(h *Host, _ secretReq) (caps.Code, bool) {
		return caps.Unavailable, h.cfg.Secrets == nil
	},
	done: true,
	do: func(ctx context.Context, h *Host, _ gate.Permit, r secretReq) ([]byte, error) {
		handle, err := h.cfg.Secrets.Handle(ctx, r.id)
		switch {
		case err == nil:
			return append(h.out[:0], handle...), nil
		case errors.Is(err, fs.ErrNotExist):
			return nil, h.noSecret(r, caps.SecretUnknown)
		case errors.Is(err, errors.ErrUnsupported):
			h.warn(err)
			return nil, h.noSecret(r, caps.Unavailable)
		}
		h.warn(err)
		return nil, err
	},
})

func (h *Host) warn(err error) {
	if h.cfg.Warn != nil {
		h.cfg.Warn(err.Error())
	}
}

// unknownSecretHint says what a request for what is not there should have been.
func unknownSecretHint(r caps.Request) string {
	if r.Name == "*" {
		return "what begins with rlsec_ and is no handle of this run is sent nowhere; ask secret_handle for one"
	}
	return "there is no such secret; the operator stores it with rlp secrets put " + r.Name
}

// secretLine is the line of a policy that lets a secret be put in.
func secretLine(name string) string {
	if id, host, bound := strings.Cut(name, "@"); bound {
		return fmt.Sprintf("secrets = [{ id = %q, hosts = [%q] }]", id, host)
	}
	return fmt.Sprintf("secrets = [%q], without hosts, since a program is none", name)
}

// noSecret records that what was permitted is not there.
func (h *Host) noSecret(r secretReq, code caps.Code) error {
	op, err := h.cfg.Gate.Op("secret_handle")
	if err != nil {
		return err
	}
	why := ""
	if code == caps.Unavailable {
		why = "the secrets of this host cannot be read now; the report of the run says why"
	}
	return h.refuse(op, r.request(), hiddenSecret, code, why)
}

// A secretReq asks for the handle of one secret.
type secretReq struct{ id string }

func (r secretReq) request() caps.Request {
	return caps.Request{Family: caps.Secrets, Mode: caps.Get, Name: r.id}
}

func decodeSecret(in []string) (secretReq, error) {
	id, err := caps.SecretID(in[0])
	return secretReq{strings.Clone(id)}, err
}
