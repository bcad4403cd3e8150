package kube_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// patchFile is a patch for each of the StatefulSets beside it.
const patchFile = "writable-config.yaml"

// shapeFiles have a StatefulSet of the manager each.
func shapeFiles() []string {
	return []string{"init-container.yaml", "image-volume.yaml", "verifying-init-container.yaml"}
}

// patchShapes applies the patch to each shape, as kubectl patch does.
func patchShapes(patch []byte) ([][]byte, error) {
	change, err := yaml.YAMLToJSONStrict(patch)
	if err != nil {
		return nil, err
	}
	var patched [][]byte
	for _, name := range shapeFiles() {
		content, err := os.ReadFile(filepath.Join(docs, "kubernetes", name))
		if err != nil {
			return nil, err
		}
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			if !bytes.Contains(document, []byte("\nkind: StatefulSet\n")) {
				continue
			}
			before, err := yaml.YAMLToJSONStrict(document)
			if err != nil {
				return nil, err
			}
			after, err := strategicpatch.StrategicMergePatch(before, change, appsv1.StatefulSet{})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if !json.Valid(after) {
				return nil, fmt.Errorf("%s: %s", name, after)
			}
			patched = append(patched, after)
		}
	}
	if len(patched) != len(shapeFiles()) {
		return nil, fmt.Errorf("%d StatefulSets, want one in each of %v", len(patched), shapeFiles())
	}
	return patched, nil
}
