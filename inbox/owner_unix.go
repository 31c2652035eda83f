//go:build unix

package inbox

import (
	"io/fs"
	"os"
	"syscall"
)

func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid()
}
