//go:build linux

package main

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// An override is opened once a launch, and so is the profile that the settings
// name: what was parsed is what is enforced.
//
//rlp:holds R8 A29
func TestOverrideIsOpenedOnce(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bundle := filepath.Join(dir, "agent")
	write(filepath.Join(bundle, "manifest.toml"),
		"[agent]\nname = \"agent\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = \"a.wasm\" }\n")
	write(filepath.Join(bundle, "a.wasm"),
		"\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b")
	write(filepath.Join(bundle, "policy.caps"), "[capabilities]\nkb_read = [\"notes\"]\n")
	override := filepath.Join(home, "caps", "overrides", "agent.toml")
	write(override, "[capabilities]\nkb_read = []\n")
	profile := filepath.Join(home, "caps", "profiles", "reader.toml")
	write(profile, "[deny]\ntiers = [\"network\"]\n")
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}

	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, override, unix.IN_OPEN|unix.IN_CLOSE); err != nil {
		t.Fatal(err)
	}
	second, err := unix.InotifyInit1(unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(second)
	if _, err := unix.InotifyAddWatch(second, profile, unix.IN_OPEN|unix.IN_CLOSE); err != nil {
		t.Fatal(err)
	}
	status := invoke(t.Context(), environment{
		args: []string{"launch", bundle, "--home", home, "--json", "--profile", "reader"},
		env:  []string{"RUNLOOP__SECURITY__PROFILE=reader"}, stdout: io.Discard, stderr: os.Stderr,
	})
	if status != 0 {
		t.Fatalf("exit status %d", status)
	}
	if n := opens(t, watch); n != 1 {
		t.Errorf("the override was opened %d times", n)
	}
	if n := opens(t, second); n != 1 {
		t.Errorf("the profile was opened %d times", n)
	}
	if f, err := os.Open(override); err != nil || opens(t, watch) != 1 {
		t.Errorf("control: another reader is not seen: %v", err)
	} else {
		f.Close()
	}
}

// opens counts how often the file was opened since the last look. Closings are
// watched too, or two openings in a row would be one event.
func opens(t *testing.T, watch int) int {
	t.Helper()
	buf := make([]byte, 64*unix.SizeofInotifyEvent)
	n, err := unix.Read(watch, buf)
	if err == unix.EAGAIN {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for at := 0; at+unix.SizeofInotifyEvent <= n; at += unix.SizeofInotifyEvent {
		if binary.NativeEndian.Uint32(buf[at+4:])&unix.IN_OPEN != 0 {
			count++
		}
	}
	return count
}
