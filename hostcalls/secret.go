package hostcalls

import (
	"encoding/json"

	"runloop.dev/rlp/caps"
)

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

func (h *Host) warn(err error) {
	if h.cfg.Warn != nil {
		h.cfg.Warn(err.Error())
	}
}

// A secretReq asks for the handle of one secret.
type secretReq struct{ id string }

func (r secretReq) request() caps.Request {
	return caps.Request{Family: caps.Secrets, Mode: caps.Get, Name: r.id}
}
