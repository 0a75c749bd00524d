package db

import "time"

// What one request is answered with at most, so that it is answered soon; who asks
// goes on from there.
const (
	PageBytes  = 512 << 10
	PageItems  = 1000
	VerifyStep = time.Second
)

// MaxNumber bounds the revisions and record numbers that a backup may claim, so that
// there are always more.
const MaxNumber = 1 << 62
