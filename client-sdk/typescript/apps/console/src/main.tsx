import { createRoot } from "react-dom/client";
import "./console.css";

createRoot(document.getElementById("root")!).render(<h1>Tidegate</h1>);
