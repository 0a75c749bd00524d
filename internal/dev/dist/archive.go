package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// An entry is a file of a release, or a folder where one that is empty matters.
type entry struct {
	name string // with slashes, from the top of what is released
	mode fs.FileMode
	data []byte
}

// when is the time of every file: none in particular.
var when = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// tarball writes entries beneath the folder top.
func tarball(w io.Writer, top string, entries []entry) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: top + "/" + e.name, Mode: int64(e.mode.Perm()),
			Size: int64(len(e.data)), ModTime: when, Format: tar.FormatPAX,
		}
		if e.mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(e.data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// sums writes SHA256SUMS of all files in dir, as sha256sum --check reads it.
func sums(dir string) error {
	files, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, f := range files {
		if f.Name() == sumsName {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), f.Name())
	}
	return os.WriteFile(filepath.Join(dir, sumsName), []byte(text.String()), 0o644)
}

const sumsName = "SHA256SUMS"

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
