package providers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tmaxmax/go-sse"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/model"
)

const (
	maxEvent   = 6*maxAnswer + 1<<20 // bytes of one event: a whole answer, each letter of it escaped
	maxRefusal = 64 << 10            // bytes that are read of an answer that is an error
)

// A question is one request, as often as it is asked.
type question struct {
	url    string
	header http.Header
	body   []byte
}

func newQuestion(base, place string, body any) (*question, error) {
	text, err := json.Marshal(body)
	if err != nil { // a schema or arguments that are no JSON
		return nil, unsupported("the request has no JSON form: %v", err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"rlp"}}
	return &question{url: strings.TrimRight(base, "/") + place, header: header, body: text}, nil
}

// A refusal is an answer of status 400 or more.
type refusal struct {
	status int
	body   []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d", r.status) }

func (p *Providers) ask(ctx context.Context, q *question) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.url, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	req.Header = q.header.Clone()
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < http.StatusBadRequest {
		return res.Body, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // what came of it says enough
	return nil, &refusal{res.StatusCode, text}
}

// stream hands each event of the answer to q to take, as its JSON.
func (p *Providers) stream(ctx context.Context, q *question, take func(event []byte) error) error {
	body, err := p.ask(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	for event, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			return errTooLarge
		case err != nil:
			return err
		case event.Data == "":
			continue
		case event.Data == "[DONE]":
			return nil
		}
		if err := take([]byte(event.Data)); err != nil {
			return err
		}
	}
	return nil
}

// ofProvider reads what a provider answers, which says more than is asked, and more
// with each version of its protocol.
const ofProvider = strictjson.UnknownFields

// detail is what a provider says of its refusal, for the guest. What it says of
// a key that it does not take may quote the key.
func detail(err error) string {
	var r *refusal
	if !errors.As(err, &r) || r.status == http.StatusUnauthorized || r.status == http.StatusForbidden {
		return ""
	}
	var body struct {
		Error struct {
			Code    any    `json:"code"` // a text, or a number
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if strictjson.Unmarshal(r.body, &body, ofProvider) != nil {
		return ""
	}
	code, _ := body.Error.Code.(string)
	if code = cmp.Or(code, body.Error.Type); code == "" {
		return body.Error.Message
	}
	return code + ": " + body.Error.Message
}

// count is a number of tokens that makes sense, or -1.
func count(n *int64) int64 {
	if n == nil {
		return model.Unmetered().In
	}
	return max(*n, -1)
}
