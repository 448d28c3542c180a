package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"path"
	"slices"
	"time"
)

// tarball returns the files in one folder, compressed.
func tarball(folder string, list []file, at time.Time) ([]byte, error) {
	var named []file
	for _, f := range list {
		f.name = path.Join(folder, f.name)
		named = append(named, f)
	}
	data, err := tree(named, at)
	if err != nil {
		return nil, err
	}
	return compress(data)
}

func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// tree returns an archive of the files by their names, with the folders that they are in, all of root's.
func tree(list []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	folders := map[string]bool{".": true, "/": true}
	var add func(h *tar.Header, data []byte) error
	add = func(h *tar.Header, data []byte) error {
		if dir := path.Dir(path.Clean(h.Name)); !folders[dir] {
			folders[dir] = true
			if err := add(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}, nil); err != nil {
				return err
			}
		}
		h.ModTime, h.Size, h.Format = at, int64(len(data)), tar.FormatPAX
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	list = slices.SortedFunc(slices.Values(list), func(a, b file) int { return cmp.Compare(a.name, b.name) })
	for _, f := range list {
		if err := add(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode)}, f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
