package durable

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// fileID is the volume serial number and the file index.
func fileID(root *os.Root, name string, st fs.FileInfo) (ID, error) {
	f, err := root.Open(name)
	if err != nil {
		return ID{}, err
	}
	defer f.Close()
	var fi windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &fi); err != nil {
		return ID{}, err
	}
	return ID{uint64(fi.VolumeSerialNumber), uint64(fi.FileIndexHigh)<<32 | uint64(fi.FileIndexLow)}, nil
}
