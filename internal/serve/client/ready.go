package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	neturl "net/url"
	"syscall"
	"time"

	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/base/strictjson"
)

// checkTime is how long a service may take to say that it is ready.
const checkTime = 4 * time.Second

// Ready asks the service at a socket whether it takes runs, for what watches over it,
// and returns what it says. An error says why there is none, or why it takes none. It
// proves nothing of addresses.
func Ready(ctx context.Context, socket string) (said []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/readyz", nil)
	if err != nil {
		return nil, fmt.Errorf("asking the service: %w", err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, nobody(socket, err)
	}
	defer answer.Body.Close()
	if said, err = io.ReadAll(io.LimitReader(answer.Body, 256<<10)); err != nil {
		return nil, fmt.Errorf("reading what the service says: %w", err)
	}
	said = bytes.TrimSpace(said)
	if answer.StatusCode == http.StatusOK {
		return said, nil
	}
	var why struct {
		Status string `json:"status"`
		Reason string `json:"reason"`
	}
	if strictjson.Unmarshal(said, &why, strictjson.UnknownFields) == nil && why.Reason != "" {
		said = []byte(why.Status + ": " + printable.Line(why.Reason))
	}
	return nil, fmt.Errorf("rlp serve at %s is not ready (%s): %s", socket, answer.Status, said)
}

// nobody says why a service was not reached, and what to do.
func nobody(socket string, err error) error {
	var url *neturl.Error
	if errors.As(err, &url) {
		err = url.Err
	}
	why := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "nobody serves this home; rlp serve does"
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "what served there has ended; start it again with rlp serve"
	case errors.Is(err, fs.ErrPermission):
		why = "it is another user's; ask as the one who serves"
	case errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("what is there does not answer within %s; its log says what it does", checkTime)
	default:
		why = err.Error()
	}
	return fmt.Errorf("no rlp serve at %s: %s", socket, why)
}
