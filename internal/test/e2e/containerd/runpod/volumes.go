package main

import (
	"fmt"
	"os"
	"path/filepath"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// makeVolumes makes the folders of a Pod's volumes, and returns what to mount
// for each: a host path or an image.
func makeVolumes(dir string, in *objects) (map[string]*cri.Mount, error) {
	mounts := map[string]*cri.Mount{}
	for _, v := range in.pod.Spec.Volumes {
		path := filepath.Join(dir, v.Name)
		switch {
		case v.EmptyDir != nil:
			if err := makeEmptyDir(path, in.pod.Spec.SecurityContext.FSGroup); err != nil {
				return nil, err
			}
			mounts[v.Name] = &cri.Mount{HostPath: path}
		case v.ConfigMap != nil:
			if err := writeFiles(path, in.files, "ConfigMap/"+v.ConfigMap.Name); err != nil {
				return nil, err
			}
			mounts[v.Name] = &cri.Mount{HostPath: path, Readonly: true}
		case v.Secret != nil:
			if err := writeFiles(path, in.files, "Secret/"+v.Secret.SecretName); err != nil {
				return nil, err
			}
			mounts[v.Name] = &cri.Mount{HostPath: path, Readonly: true}
		case v.Image != nil:
			mounts[v.Name] = &cri.Mount{Image: &cri.ImageSpec{Image: v.Image.Reference, UserSpecifiedImage: v.Image.Reference}, Readonly: true}
		default:
			return nil, fmt.Errorf("volume %s has no source that is known here", v.Name)
		}
	}
	return mounts, nil
}

// makeEmptyDir makes a folder with the mode and group that a kubelet gives it.
func makeEmptyDir(path string, group *int64) error {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	mode := os.FileMode(0o777)
	if group != nil {
		mode |= os.ModeSetgid
		if err := os.Chown(path, -1, int(*group)); err != nil { //nolint:gosec // below the folder of the command line
			return err
		}
	}
	return os.Chmod(path, mode)
}

func writeFiles(path string, files map[string]map[string]string, key string) error {
	data, ok := files[key]
	if !ok {
		return fmt.Errorf("%s is not there", key)
	}
	if err := os.MkdirAll(path, 0o755); err != nil { //nolint:gosec // as a kubelet does: the container's user reads it
		return err
	}
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o644); err != nil { //nolint:gosec // likewise
			return err
		}
	}
	return nil
}
