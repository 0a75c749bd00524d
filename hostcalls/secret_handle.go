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

func decodeSecret(in []string) (secretReq, error) {
	id, err := caps.SecretID(in[0])
	return secretReq{strings.Clone(id)}, err
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
