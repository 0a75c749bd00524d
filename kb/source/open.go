package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Open opens a regular file to be read. It follows no link at the end of path,
// never waits for a pipe's other end, and refuses what the kernel makes up while
// it is read (/proc and the like), which may wait for ever.
func Open(path string) (*os.File, error) {
	f, info, err := open(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", path), f.Close())
	}
	return f, nil
}

// open opens whatever lies at path without following a link or waiting.
func open(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(untrailed(path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		// What a system answers for a link differs: ELOOP, EMLINK or EFTYPE.
		if info, no := os.Lstat(untrailed(path)); no == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, fmt.Errorf("%s is a link, and links are not followed; name what it leads to", path)
		}
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		if kind := madeUp(f); kind != "" {
			err = fmt.Errorf("%s lies on %s, whose files the kernel makes up", path, kind)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// untrailed is path without what would make a system follow a link at its end.
func untrailed(path string) string {
	for len(path) > 1 {
		short := strings.TrimSuffix(strings.TrimSuffix(path, "/"), "/.")
		if short == path {
			break
		}
		if short == "" {
			return "/"
		}
		path = short
	}
	return path
}

// A stoppable reads until its context ends.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
