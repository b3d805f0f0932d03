"""What the desk shows, written with Streamlit (extra ``app``); nothing here computes."""
