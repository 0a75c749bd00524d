package hostcalls

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

var secretHandle = define("secret_handle", 1, caps.Secrets, gated[secretReq]{
	decode:  decodeSecret,
	touches: func(r secretReq) (caps.Request, string) { return r.request(), hiddenSecret },
	target:  func(h *Host, r secretReq) string { return h.cfg.shown(r.request()) },
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
			return nil, h.cfg.noSecret(r, caps.SecretUnknown)
		case errors.Is(err, errors.ErrUnsupported):
			h.cfg.warn(err)
			return nil, h.cfg.noSecret(r, caps.Unavailable)
		}
		h.cfg.warn(err)
		return nil, err
	},
})

func decodeSecret(in []string) (secretReq, error) {
	id, err := caps.SecretID(in[0])
	return secretReq{strings.Clone(id)}, err
}

// noSecret records that what was permitted is not there.
func (c *Config) noSecret(r secretReq, code caps.Code) error {
	op, err := c.Gate.Op("secret_handle")
	if err != nil {
		return err
	}
	why := ""
	if code == caps.Unavailable {
		why = "the secrets of this host cannot be read now; the report of the run says why"
	}
	return c.refuse(op, r.request(), hiddenSecret, code, why)
}

// fill puts the values of this run's secrets in the place of their handles in
// text. Each secret passes the gate again: what was taken from the run since it
// got the handle is not put in. What begins like a handle and is none of this
// run's is refused.
func (c *Config) fill(op *gate.Op, text string, dst Destination) (string, error) {
	if c.Secrets == nil {
		return text, nil
	}
	out, err := c.Secrets.Fill(text, func(id string) error {
		req := dst.request(id)
		if _, err := c.permit(op, req, c.shown(req), nil); err != nil {
			return err
		}
		if dst.Host == "" {
			return nil
		}
		if err := c.Secrets.Sending(id, dst.Host); err != nil {
			c.warn(err)
			return c.refuse(op, req, c.shown(req), caps.Unavailable, "")
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		any := caps.Request{Family: caps.Secrets, Mode: caps.Use, Name: "*"}
		return "", c.refuse(op, any, hiddenSecret, caps.SecretUnknown, "")
	}
	return out, err
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

// A secretReq asks for the handle of one secret.
type secretReq struct{ id string }

func (r secretReq) request() caps.Request {
	return caps.Request{Family: caps.Secrets, Mode: caps.Get, Name: r.id}
}
