package sdk

import (
	"encoding/json"
	"strings"
	"time"
	"unsafe"
)

// An HTTPRequest is one request. A header value may be a secret's handle.
type HTTPRequest struct {
	Method  string // "" is GET
	URL     string
	Headers map[string]string
	Body    []byte
	Timeout time.Duration // 0: the host's own; counted in milliseconds, and at least one
}

// An HTTPResponse is the answer, of whatever status.
type HTTPResponse struct {
	Status  int
	Headers map[string]string // by names such as Content-Type; several values of one are joined by ", "
	Body    []byte
}

// HTTP makes one request and follows up to five redirects. A status of 400 or
// more is a response, not an error. The capability is network:https:host:port,
// of each host on the way; the body of a response comes decompressed.
func HTTP(req HTTPRequest) (HTTPResponse, error) {
	text, err := json.Marshal(struct {
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
		Timeout int64             `json:"timeout_ms,omitempty"`
	}{method(req.Method), req.URL, req.Headers, milliseconds(req.Timeout)})
	if err != nil {
		return HTTPResponse{}, err
	}
	response, err := call("net_http", nil, func(out unsafe.Pointer, room uint32) int64 {
		return netHTTP(view(text), view(req.Body), out, room)
	})
	if err != nil {
		return HTTPResponse{}, err
	}
	head, body, err := unframe("net_http", response)
	if err != nil {
		return HTTPResponse{}, err
	}
	var h struct {
		Status  int                    `json:"status"`
		Headers map[string]headerValue `json:"headers"`
	}
	if err := json.Unmarshal(head, &h); err != nil {
		return HTTPResponse{}, malformed("net_http", err.Error())
	}
	r := HTTPResponse{Status: h.Status, Headers: make(map[string]string, len(h.Headers)), Body: body}
	for name, v := range h.Headers {
		r.Headers[name] = string(v)
	}
	return r, nil
}

func method(m string) string {
	if m == "" {
		return "GET"
	}
	return m
}

// milliseconds rounds up: less than one would ask for the host's own time.
func milliseconds(d time.Duration) int64 {
	return (max(d, 0) + time.Millisecond - 1).Milliseconds()
}

// A headerValue is one text or a list of them.
type headerValue string

func (v *headerValue) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*v = headerValue(one)
		return nil
	}
	var many []string
	if err := json.Unmarshal(text, &many); err != nil {
		return err
	}
	*v = headerValue(strings.Join(many, ", "))
	return nil
}
