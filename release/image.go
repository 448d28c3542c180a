package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	v1tarball "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A platform is what the image has for one architecture.
type platform struct {
	*built
	list []file
}

// image returns the image for all platforms, as an archive of an OCI layout. It has the programs, the first
// configuration and the licences; the [Containerfile] makes the same.
//
// [Containerfile]: Containerfile
func image(ps []platform) ([]byte, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range ps {
		img, err := p.image()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: p.arch},
		}})
	}
	// One entry, from which an engine takes what its machine runs.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{
		Annotations: map[string]string{"org.opencontainers.image.ref.name": "vxswitch:" + tag(ps[0].version)},
	}})
	dir, err := os.MkdirTemp("", "vxswitch-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, named); err != nil {
		return nil, err
	}
	var list []file
	err = filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		list = append(list, file{name: filepath.ToSlash(rel), mode: 0o644, data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	return tree(list, ps[0].time)
}

// A tag of an image has no plus sign.
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// inImage is the files of the image, by their names in the tarball.
var inImage = map[string]string{
	"vxswitchd": "usr/bin/vxswitchd", "vxsctl": "usr/bin/vxsctl",
	"vxswitchd.json": "etc/vxswitch/vxswitchd.json", "LICENSES": "usr/share/doc/vxswitch/copyright",
}

func (p platform) image() (v1.Image, error) {
	var list []file
	for _, f := range p.list {
		if name := inImage[f.name]; name != "" {
			f.name = name
			list = append(list, f)
		}
	}
	data, err := tree(list, p.time)
	if err != nil {
		return nil, err
	}
	layer, err := v1tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		v1tarball.WithMediaType(types.OCILayer), v1tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: p.time}
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", p.arch, created
	c.Config = v1.Config{
		Entrypoint:   []string{"/usr/bin/vxswitchd"},
		Cmd:          []string{"-config", "/etc/vxswitch/vxswitchd.json"},
		Env:          []string{"PATH=/usr/bin"},
		ExposedPorts: map[string]struct{}{"4789/udp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "vxswitch",
			"org.opencontainers.image.version":  p.version,
			"org.opencontainers.image.revision": p.commit,
			"org.opencontainers.image.source":   "https://github.com/vxswitch/vxswitch",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(img, c)
}
