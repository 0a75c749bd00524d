package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A Message is one of a stream.
type Message struct {
	ID   uint64 // 0: it has none
	Name string // the kind of a record, or "end"
	Data []byte // one JSON document
}

const (
	mostLine = 4 << 20 // bytes of one message
	retries  = 8       // that fail one after the other
	firstGap = 100 * time.Millisecond
)

// Records follows the records of a run behind the one numbered after, up to the
// message "end". Where the connection is lost it goes on behind the last message
// that came, so that each comes once and in order.
func (c *Client) Records(ctx context.Context, runID string, after uint64) iter.Seq2[Message, error] {
	return c.follow(ctx, "/runs/"+url.PathEscape(runID)+"/events", after, true)
}

// Events follows the life of all runs that may be seen, until ctx ends, and goes
// on like [Client.Records].
func (c *Client) Events(ctx context.Context, after uint64) iter.Seq2[Message, error] {
	return c.follow(ctx, "/events", after, false)
}

// follow yields messages, and asks again where a stream broke. ends: the message
// "end" is the last; otherwise the service only ends.
func (c *Client) follow(ctx context.Context, path string, after uint64, ends bool) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for failed := 0; ; {
			was := after
			over, err := c.stream(ctx, path, &after, ends, yield)
			if over || ctx.Err() != nil {
				return
			}
			if after != was {
				failed = 0
			}
			var told *Error
			if failed++; failed > retries || errors.As(err, &told) && told.Status != http.StatusTooManyRequests &&
				told.Status < http.StatusInternalServerError {
				yield(Message{}, err)
				return
			}
			pause := time.NewTimer(firstGap << min(failed-1, 5))
			select {
			case <-ctx.Done():
				pause.Stop()
				return
			case <-pause.C:
			}
		}
	}
}

var errBroken = errors.New("the stream ended before its end")

// stream yields the messages of one connection.
func (c *Client) stream(ctx context.Context, path string, after *uint64, ends bool,
	yield func(Message, error) bool,
) (over bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := c.request(ctx, "GET", path, nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if *after > 0 {
		r.Header.Set("Last-Event-ID", strconv.FormatUint(*after, 10))
	}
	resp, err := c.do(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent { // there is nothing more
		return true, nil
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(make([]byte, 0, 4096), mostLine)
	var m Message
	for in.Scan() {
		if len(in.Bytes()) > 0 {
			m.take(in.Bytes())
			continue
		}
		if m.Name == "" { // a comment
			continue
		}
		if m.Name == "error" {
			return false, fmt.Errorf("following: the service says %s", shape(m.Data))
		}
		if m.ID > 0 {
			*after = m.ID
		}
		last := ends && m.Name == "end"
		if !yield(m, nil) || last {
			return true, nil
		}
		m = Message{}
	}
	return false, errors.Join(errBroken, in.Err())
}

// take takes in a line of a message.
func (m *Message) take(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		m.ID, _ = strconv.ParseUint(string(value), 10, 64)
	case "event":
		m.Name = string(value)
	case "data":
		if m.Data != nil {
			m.Data = append(m.Data, '\n')
		}
		m.Data = append(m.Data, value...)
	}
}
