include $(sort $(wildcard $(BR2_EXTERNAL_WORSTCASE_PATH)/*/*.mk))
