package kb

import "runloop.dev/rlp/kb/wire"

// What a caller branches on, as a store and the process that owns it have it. A key
// that is not there is [fs.ErrNotExist].
var (
	ErrConflict    = wire.ErrConflict
	ErrDomain      = wire.ErrDomain
	ErrInvalid     = wire.ErrInvalid
	ErrUnavailable = wire.ErrUnavailable
	ErrVersion     = wire.ErrVersion
	ErrDamaged     = wire.ErrDamaged
	ErrNotEmpty    = wire.ErrNotEmpty
	ErrClosed      = wire.ErrClosed
)
