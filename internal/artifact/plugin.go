package artifact

import ocispec "github.com/opencontainers/image-spec/specs-go/v1"

// PluginLayer is a layer marked as holding the plugin.
type PluginLayer struct {
	Descriptor ocispec.Descriptor
	// Version is the annotation's value.
	Version string
}

// PluginLayers returns the layers marked with AnnotationLayer, in order. It is
// empty for images that were not made as fleeting plugins.
func PluginLayers(m ocispec.Manifest) []PluginLayer {
	var out []PluginLayer
	for _, l := range m.Layers {
		if v, ok := l.Annotations[AnnotationLayer]; ok {
			out = append(out, PluginLayer{Descriptor: l, Version: v})
		}
	}
	return out
}
