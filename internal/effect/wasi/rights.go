package wasi

// rights is WASI's set of what a descriptor may be used for. It only ever
// narrows; what the policy allows is the [FS]'s to say, on top of it.
type rights uint64

const (
	rightFDDatasync rights = 1 << iota
	rightFDRead
	rightFDSeek
	rightFDSetFlags
	rightFDSync
	rightFDTell
	rightFDWrite
	rightFDAdvise
	rightFDAllocate
	rightPathCreateDirectory
	rightPathCreateFile
	rightPathLinkSource
	rightPathLinkTarget
	rightPathOpen
	rightFDReaddir
	rightPathReadlink
	rightPathRenameSource
	rightPathRenameTarget
	rightPathFilestatGet
	rightPathFilestatSetSize
	rightPathFilestatSetTimes
	rightFDFilestatGet
	rightFDFilestatSetSize
	rightFDFilestatSetTimes
	rightPathSymlink
	rightPathRemoveDirectory
	rightPathUnlinkFile
	rightPollFD
	rightSockShutdown
)

const (
	// dirRights is what a directory's descriptor can be used for.
	dirRights = rightFDSetFlags | rightFDSync | rightFDDatasync | rightFDAdvise |
		rightPathCreateDirectory | rightPathCreateFile | rightPathLinkSource | rightPathLinkTarget |
		rightPathOpen | rightFDReaddir | rightPathReadlink | rightPathRenameSource | rightPathRenameTarget |
		rightPathFilestatGet | rightPathFilestatSetSize | rightPathFilestatSetTimes |
		rightFDFilestatGet | rightFDFilestatSetTimes |
		rightPathSymlink | rightPathRemoveDirectory | rightPathUnlinkFile

	// fileRights is what a regular file's descriptor can be used for.
	fileRights = rightFDDatasync | rightFDRead | rightFDSeek | rightFDSetFlags | rightFDSync |
		rightFDTell | rightFDWrite | rightFDAdvise | rightFDAllocate |
		rightFDFilestatGet | rightFDFilestatSetSize | rightFDFilestatSetTimes | rightPollFD

	// allRights is what the preopen hands down.
	allRights = dirRights | fileRights

	// stdioRights lack seek and tell: libcs take that and the file type for
	// "not a terminal", and buffer.
	stdioRights = rightFDSetFlags | rightFDFilestatGet | rightPollFD
)

// fdflags is WASI's set of descriptor flags.
type fdflags uint16

const (
	flagAppend fdflags = 1 << iota
	flagDsync
	flagNonblock
	flagRsync
	flagSync
	allFDFlags = flagAppend | flagDsync | flagNonblock | flagRsync | flagSync
)
