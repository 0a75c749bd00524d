package evidence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"runloop.dev/rlp/internal/base/home"
)

// A Sink is a place outside the host where checkpoints are told: what is there
// cannot be taken back, so that a log which was cut or written anew shows.
type Sink interface {
	// Name is the sink as the settings name it.
	Name() string
	// put tells of checkpoints, one or several, and returns when they are there to stay.
	put(ctx context.Context, origin string, notes [][]byte) error
}

// A Poster posts a body to a URL of the settings, and wants an answer that says
// it was taken.
type Poster func(ctx context.Context, url string, body []byte) error

// ParseSink reads a sink as the settings name it.
func ParseSink(name string, post Poster) (Sink, error) {
	scheme, rest, _ := strings.Cut(name, ":")
	switch scheme {
	case "file", "git":
		if !filepath.IsAbs(rest) || filepath.Clean(rest) != rest {
			return nil, fmt.Errorf("%s: %s: wants an absolute path behind it", name, scheme)
		}
		if scheme == "git" {
			return gitSink(rest), nil
		}
		return fileSink(rest), nil
	case "https", "http":
		return &postSink{url: name, post: post}, nil
	}
	return nil, fmt.Errorf("%s: no sink begins so; file:, git: or https: do", name)
}

// A postSink is told by a request each time.
type postSink struct {
	url  string
	post Poster
}

func (s *postSink) Name() string { return s.url }

func (s *postSink) put(ctx context.Context, _ string, notes [][]byte) error {
	return s.post(ctx, s.url, JoinNotes(notes))
}

// A fileSink is a file that checkpoints are appended to, one after another with
// an empty line between two.
type fileSink string

func (s fileSink) Name() string { return "file:" + string(s) }

func (s fileSink) put(_ context.Context, _ string, notes [][]byte) error {
	return AppendNotes(string(s), notes)
}

// AppendNotes appends checkpoints to a file, and returns when they are on disk.
func AppendNotes(path string, notes [][]byte) error {
	_, missing := os.Lstat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	separator, err := ending(path, info.Size())
	if err != nil {
		return err
	}
	if _, err := f.Write(append([]byte(separator), JoinNotes(notes)...)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if errors.Is(missing, fs.ErrNotExist) {
		return home.SyncDir(filepath.Dir(path))
	}
	return nil
}

// ending is what must come between what a file has and the next checkpoint: an
// empty line, and the end of a line that was interrupted.
func ending(path string, size int64) (string, error) {
	if size == 0 {
		return "", nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return "\n\n", nil // it may be written and not read
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return "", err
	}
	if last[0] == '\n' {
		return "\n", nil
	}
	return "\n\n", nil
}
