//go:build !unix

package compose

import "time"

// A FileState tells nothing here: files are read again each time.
type FileState struct{}

// StateOf is the state of no file.
func StateOf(string) FileState { return FileState{} }

// Sure is false: nothing can be told.
func (FileState) Sure(time.Time) bool { return false }
