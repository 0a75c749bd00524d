// Package jail does the file operations of a run: each is first put to the
// gate, then done beneath a directory handle of the grant that covers it.
//
// No symbolic link is ever followed by the kernel on a guest's behalf. Where
// one lies on the way, the jail reads its text, makes the path that it stands
// for, and asks the gate about that path as if the guest had written it. So a
// link leads neither out of a grant, nor from what one grant allows into what
// another does, nor into a folder that is denied inside a broad grant.
// A path that a link expands to is cleaned lexically, as the guest's own is.
//
// What the modes mean: read is opening for reading, stat, listing and reading
// a link; write is opening for writing, creating, truncating, making
// directories and links, setting times; delete is removing a name. A rename
// needs all three where it takes from (or the content would gain what the new
// place allows) and write where it puts to, in the whole tree on both sides. A
// hard link needs read and write on the file and write on the new name. A new
// symbolic link needs write on its name and read on all that it leads to, link
// by link; so does one that is moved, by itself or in a folder, or hard-linked.
//
// Listing a directory is reading that directory: it shows the names of what
// lies in it, also of what the guest may not open. A hard link that lies
// inside a grant is the file. Regular files and directories alone are opened;
// a FIFO, device or socket is found out without waiting on it and refused, but
// can be seen by stat and removed. Mount points below a grant are not entered:
// what is mounted there needs a grant of its own. A grant's own directory can
// be neither removed nor moved, nor can a directory that holds one.
//
// What a guest plants in a folder that it may write is hostile to whoever
// looks at it later: a link that leads nowhere is judged as text, and something
// may come to be there. The jail judges a link whenever it is used; other
// programs do not.
//
// On Linux the kernel confines each step (openat2: beneath, no links, no mount
// crossing). Elsewhere, and where openat2 is missing, each component is opened
// by itself and never as a link, which confines as well, and mounts are told
// apart by device number alone. On a volume that ignores case, a denial inside
// a broad grant does not cover the other spellings of its name. Systems other
// than Linux and macOS have no jail: [Open] refuses.
package jail
