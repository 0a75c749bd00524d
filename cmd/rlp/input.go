package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/launcher/compose"
)

// input is the agent's stdin as the flag gives it, or what reads it: stdin and
// files can keep others waiting.
func (a *app) input(h home.Home, flag string) ([]byte, func(ctx context.Context) ([]byte, error), error) {
	var read func() ([]byte, error)
	switch {
	case flag == "":
		return nil, nil, nil
	case flag == "-":
		read = func() ([]byte, error) { return io.ReadAll(io.LimitReader(a.stdin, compose.MaxInput+1)) }
	case strings.HasPrefix(flag, "@"):
		var foreign error
		if moved := a.here(func() { foreign = compose.Own(h, flag[1:]) }); moved != nil || foreign != nil {
			return nil, nil, errors.Join(foreign, moved)
		}
		read = func() (data []byte, err error) {
			moved := a.here(func() { data, err = readAtMost(flag[1:]) })
			return data, errors.Join(moved, err)
		}
	default:
		return []byte(flag), nil, nil
	}
	return nil, func(ctx context.Context) ([]byte, error) { return unlessOver(ctx, read) }, nil
}

// unlessOver reads, and waits no longer when ctx is over: a terminal or a FIFO
// that nobody writes to has no end.
func unlessOver(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	var data []byte
	done := make(chan error, 1)
	go func() {
		var err error
		data, err = read()
		done <- err
	}()
	select {
	case err := <-done:
		return data, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func readAtMost(path string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, compose.MaxInput+1))
}
