//go:build !slim

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/launcher"
)

// checkTime is how long a service may take to say that it is ready.
const checkTime = 4 * time.Second

// checkService asks the service of the home, by its socket, whether it takes runs:
// for what watches over it, where there is no other program to ask with. It makes
// nothing, and proves nothing of addresses.
func (a *app) checkService(ctx context.Context, socket string) error {
	dir, err := home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil {
		return inputErr(err)
	}
	socket = cmp.Or(socket, filepath.Join(dir, "run", serveSocket))
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
		return fmt.Errorf("asking the service: %w", err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return &statusError{launcher.StatusUnavailable, fmt.Errorf("no rlp serve at %s: %w", socket, errors.Unwrap(err))}
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil {
		return &statusError{launcher.StatusUnavailable, fmt.Errorf("reading what the service says: %w", err)}
	}
	said = bytes.TrimSpace(said)
	if answer.StatusCode != http.StatusOK {
		return &statusError{launcher.StatusUnavailable, fmt.Errorf("rlp serve at %s is not ready (%s): %s", socket, answer.Status, said)}
	}
	if !a.quiet {
		_, err = fmt.Fprintf(a.stdout, "%s\n", said)
	}
	return err
}
