//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

// asked has no terminals on this system.
func asked(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("asked: no terminals here") }
