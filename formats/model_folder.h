// The folders in which the files may lie that a model names: contents of tensors, vocabularies of
// tables.
//
// A model may come from anybody. Its names lead to files of its folder alone, and links there could
// lead anywhere, so they are not followed. There is one exception: the caches of model hubs
// (Hugging Face's) hold a model as a folder of links, and the files themselves lie in one other
// folder. Where the model's own file is such a link, other files may be links, too, to files in the
// very folder that the model's file really lies in: not below it, and not by way of a folder that
// is a link.
#pragma once

#include <string>

namespace heddle::formats {

// The folder that the model's file really lies in, where `model` is a symbolic link; else empty.
// No part of the result is a link.
std::string FolderBehindLink(const std::string& model);

// The file that `path` leads to, where that lies in `folder` or below it, without links; else
// empty. Precondition: no part of `folder` is a link; empty: nothing lies in it.
std::string FileIn(const std::string& folder, const std::string& path);

// The file that `link` leads to, where `link` is a symbolic link and the file lies in `behind`
// itself, which FolderBehindLink gave; else empty. Precondition: no folder of `link` is a link.
std::string FileBehind(const std::string& behind, const std::string& link);

}  // namespace heddle::formats
