// The folders in which a model's other files may lie: contents of tensors, vocabularies of tables.
//
// A model is untrusted. Its names may lead only to files in its own folder, and links there could
// lead anywhere, so they are not followed, with one exception: the caches of model hubs (Hugging
// Face's) hold a model as a folder of links, with all files in one other folder. Where the model's
// own file is such a link, its other files may be links too, to files in the very folder where the
// model's file really lies: not below it, and not through a folder that is a link.
#pragma once

#include <string>

namespace heddle::formats {

// The folder where the model's file really lies, if `model` is a symbolic link; else empty. No part
// of the result is a link.
std::string FolderBehindLink(const std::string& model);

// The file at `path` if it lies in `folder` or below it and no part of its path is a link; else
// empty. Precondition: no part of `folder` is a link. An empty `folder` contains nothing.
std::string FileIn(const std::string& folder, const std::string& path);

// The target of `link` if `link` is a symbolic link and the target lies directly in `behind`, a
// result of FolderBehindLink; else empty. Precondition: no folder in `link` is a link.
std::string FileBehind(const std::string& behind, const std::string& link);

}  // namespace heddle::formats
