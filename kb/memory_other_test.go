//go:build !linux || race

package kb_test

import "errors"

func childIntake(string) error { return errors.ErrUnsupported }
